// The page in Chinese. A test holds this table against every text of the page.

export const chinese = {
};
