// The text of a filter: one that is typed counts once nobody types any more, one of an address counts at once.

import { useEffect, useRef, useState } from "../vendor/preact.js";

/** [typed, setTyped] of the field of a filter whose text is `text`; `onText` gets another one `ms` after the last key. */
export function useTypedText(text, onText, ms) {
  const [typed, setTyped] = useState(text);
  const sent = useRef(text);
  useEffect(() => {
    if (text !== sent.current) setTyped((sent.current = text));
  }, [text]);
  const send = (value) => value !== sent.current && onText((sent.current = value));
  useEffect(() => {
    const timer = setTimeout(() => send(typed.trim()), ms);
    return () => clearTimeout(timer);
  }, [typed]);
  return [typed, setTyped];
}
