// useKeys(): the editor's keys. In text fields undo is the field's own.

import { useEffect, useRef } from "../vendor/preact.js";

/** Ctrl+Z, Ctrl+Y (or Ctrl+Shift+Z) and Ctrl+S. */
export function useKeys(acts) {
  const latest = useRef(acts);
  latest.current = acts;
  useEffect(() => {
    const listener = (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || document.querySelector("dialog[open]")) return;
      const key = event.key.toLowerCase();
      const isTyping = event.target.closest?.("input:not([type=checkbox]):not([type=radio]), textarea");
      const act = key === "s" ? latest.current.onSave : isTyping ? null : key === "y" || (key === "z" && event.shiftKey) ? latest.current.onRedo : key === "z" ? latest.current.onUndo : null;
      if (act) event.preventDefault(), act();
    };
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
}
