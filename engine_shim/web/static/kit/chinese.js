// The page in Chinese. A test holds these tables against every text of the page.

import { chineseEdit } from "./chinese_edit.js";
import { chinesePages } from "./chinese_pages.js";
import { chineseRun } from "./chinese_run.js";

export const chinese = { ...chineseEdit, ...chinesePages, ...chineseRun };
