// useCheck(): what the server finds wrong with a text, asked as it is typed.

import { useEffect, useRef, useState } from "../vendor/preact.js";
import { ask } from "../kit/api.js";

const PAUSE_MS = 300;

/** The check of a text: {answer, isCurrent, error}. The answer to an older text never takes the place of a newer one's. */
export function useCheck(text, format) {
  const [state, setState] = useState({ answer: null, of: null, error: null });
  const isFirst = useRef(true);
  useEffect(() => {
    if (text === null) return undefined;
    const control = new AbortController();
    const timer = setTimeout(
      () => {
        ask("drafts/check", { body: { text, format }, signal: control.signal }).then(
          (answer) => control.signal.aborted || setState({ answer, of: text, error: null }),
          (error) => control.signal.aborted || setState((before) => ({ ...before, error })),
        );
      },
      isFirst.current ? 0 : PAUSE_MS,
    );
    isFirst.current = false;
    return () => (clearTimeout(timer), control.abort());
  }, [text, format]);
  return { answer: state.answer, error: state.error, isCurrent: state.of === text };
}
