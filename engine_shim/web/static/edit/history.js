// The texts that an editor has had, to go back and forth among. Pure.

const MOST = 200;
const PAUSE_MS = 1500;

/** A history that begins with a text. */
export const startHistory = (text) => ({ texts: [text], at: 0, key: null, time: 0 });

/** The text at hand. */
export const currentText = (history) => history.texts[history.at];

/** The history with a further text. Changes of one place that follow each other quickly are one step. */
export function addText(history, text, key, now) {
  if (text === currentText(history)) return history;
  const isSameStep = key !== null && key === history.key && now - history.time < PAUSE_MS && history.at > 0;
  const kept = history.texts.slice(0, isSameStep ? history.at : history.at + 1).slice(-MOST);
  return { texts: [...kept, text], at: kept.length, key, time: now };
}

/** Whether there is a text before, or after. */
export const canMove = (history, step) => history.at + step >= 0 && history.at + step < history.texts.length;

/** The history at the text before (-1) or after (1). */
export const moveBy = (history, step) => (canMove(history, step) ? { ...history, at: history.at + step, key: null } : history);
