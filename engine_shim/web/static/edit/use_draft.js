// useDraft(): the text that is edited, with its past, its faults and what is saved of it.

import { useCallback, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { ask } from "../kit/api.js";
import { useAnswer } from "../kit/parts.js";
import { guardLeaving } from "../kit/router.js";
import { t } from "../kit/words.js";
import { keep, readKept } from "./draft_store.js";
import { addText, canMove, currentText, moveBy, startHistory } from "./history.js";
import { writeAt } from "./flow_edits.js";
import { NEW_WORKFLOW } from "./new_workflow.js";
import { changeText, readText } from "./source.js";
import { useCheck } from "./use_check.js";

export const NEW = "new";

/** What is edited under a name (`ID`, `ID@VERSION` or `new`), and how it is changed. `source` is null until it is there. */
export function useDraft(name) {
  const { data: source, error, load } = useAnswer((signal) => loadSource(name, signal), [name]);
  const [history, setHistory] = useState(null);
  const [format, setFormat] = useState("yaml");
  const [wasKept, setWasKept] = useState(false);
  const [refusal, setRefusal] = useState("");
  const now = useRef(null);
  now.current = history;
  useEffect(() => {
    if (!source || now.current) return;
    const kept = readKept(name);
    const isKept = kept !== null && kept.text !== source.start;
    setFormat(isKept ? kept.format : source.format);
    setWasKept(isKept ? (kept.base === source.text ? "same" : "older") : false);
    const history = startHistory(source.start);
    setHistory(isKept ? addText(history, kept.text, null, 0) : history);
  }, [source]);
  const text = history && currentText(history);
  const isDirty = text !== null && text !== source.start;
  useKeeping(name, source, text, format, isDirty);
  const read = useMemo(() => (text === null ? { data: null, error: null } : readText(text, format)), [text, format]);
  const latest = useRef(null);
  latest.current = read.data ?? latest.current;
  const put = (next) => ((now.current = next), setHistory(next));
  const setText = useCallback((wanted, key = null) => (setRefusal(""), put(addText(now.current, wanted, key, performance.now()))), []);
  const apply = useCallback(
    (edit, key = null) => {
      try {
        const wanted = changeText(currentText(now.current), format, edit);
        setText(wanted, key);
        return wanted;
      } catch (failure) {
        setRefusal(failure.message);
        return null;
      }
    },
    [format],
  );
  const write = useCallback((path, value) => apply((target) => writeAt(target, path, value), path.join("/")), [apply]);
  const move = (step) => put(moveBy(now.current, step));
  return {
    source, error, text, format, isDirty, wasKept, refusal, setText, apply, write,
    data: read.data ?? latest.current ?? {},
    unreadable: read.error,
    check: useCheck(text, format),
    canUndo: history !== null && canMove(history, -1),
    canRedo: history !== null && canMove(history, 1),
    undo: () => move(-1),
    redo: () => move(1),
    replace: (wanted, as) => (setFormat(as), setText(wanted)),
    discard: () => (setFormat(source.format), setText(source.start), setWasKept(false)),
    reload: load,
    forget: () => (keep(name, null), guardLeaving(null)),
  };
}

/** What a name stands for: {id, version, format, text, start, versions}; `start` is the text that the editor begins with. */
async function loadSource(name, signal) {
  const { workflows } = await ask("workflows", { signal });
  if (name === NEW) return { id: null, version: null, format: "yaml", text: "", start: NEW_WORKFLOW, versions: [], ids: idsOf(workflows) };
  const source = await ask(`workflows/${encodeURIComponent(name)}/source`, { signal });
  const versions = workflows.filter(({ id }) => id === source.id).map(({ version }) => version);
  return { ...source, start: source.text, versions, ids: idsOf(workflows) };
}

const idsOf = (workflows) => [...new Set(workflows.map(({ id }) => id))];

function useKeeping(name, source, text, format, isDirty) {
  useEffect(() => {
    if (text === null) return;
    keep(name, isDirty ? { text, format, base: source.text } : null);
    guardLeaving(isDirty ? t("There is unsaved work. Leave all the same? It is kept in this tab.") : null);
  }, [text, format, isDirty]);
  useEffect(() => () => guardLeaving(null), []);
}
