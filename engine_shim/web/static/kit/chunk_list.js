// A list of any length: what is far from the window has a height, and no content. On paper all of it has.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

const SIZE = 40;
const AHEAD = "1200px";

/** The items of a list, drawn in chunks as they come near the window.
 *
 *  `estimate` is the height of an item in pixels until it has been drawn; `focus` is the index of one to be shown at once,
 *  and `onEnd` is called when the end of the list comes near.
 */
export function ChunkList({ items, render, keyOf, estimate, focus = -1, onEnd, tag = "ol", ...rest }) {
  const chunks = [];
  for (let from = 0; from < items.length; from += SIZE) chunks.push(items.slice(from, from + SIZE));
  const wanted = focus < 0 ? -1 : Math.floor(focus / SIZE);
  const isPrinted = usePrinting();
  return html`<div class="chunks">
    ${chunks.map((chunk, at) => html`<${Chunk} key=${at} chunk=${chunk} at=${at} render=${render} keyOf=${keyOf} tag=${tag}
      estimate=${estimate} isWanted=${isPrinted || at === wanted || (at === 0 && focus < 0)} start=${at * SIZE + 1} ...${rest} />`)}
    ${onEnd && html`<${End} onEnd=${onEnd} length=${items.length} />`}
  </div>`;
}

/** Whether the page is being printed. */
function usePrinting() {
  const [isPrinted, setPrinted] = useState(false);
  useEffect(() => {
    const [begin, end] = [() => setPrinted(true), () => setPrinted(false)];
    addEventListener("beforeprint", begin);
    addEventListener("afterprint", end);
    return () => (removeEventListener("beforeprint", begin), removeEventListener("afterprint", end));
  }, []);
  return isPrinted;
}

function Chunk({ chunk, at, render, keyOf, tag: Tag, estimate, isWanted, start, ...rest }) {
  const box = useRef(null);
  const height = useRef(null);
  const [isNear, setNear] = useState(isWanted);
  const isDrawn = isNear || isWanted;
  useEffect(() => {
    const watcher = new IntersectionObserver(
      (entries) => {
        const { isIntersecting, boundingClientRect } = entries[entries.length - 1];
        if (!isIntersecting) height.current = boundingClientRect.height; // what it had while it was drawn, without a layout
        setNear(isIntersecting);
      },
      { rootMargin: AHEAD },
    );
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    box.current.style.minHeight = isDrawn ? "" : `${height.current ?? chunk.length * estimate}px`;
  }, [isDrawn, chunk.length]);
  const more = Tag === "ol" ? { start } : {};
  return html`<div ref=${box}>
    ${isDrawn && html`<${Tag} ...${more} ...${rest}>${chunk.map((item, index) => render(item, at * SIZE + index, keyOf(item)))}<//>`}
  </div>`;
}

function End({ onEnd, length }) {
  const box = useRef(null);
  useEffect(() => {
    const watcher = new IntersectionObserver(([entry]) => entry.isIntersecting && onEnd(), { rootMargin: AHEAD });
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, [length, onEnd]);
  return html`<div ref=${box} class="chunks-end"></div>`;
}
