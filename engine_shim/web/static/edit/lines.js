// Texts line by line: what two of them differ in, and how to keep a writer's own lines while a program changes others. Pure.

/** The lines of a text; a line end at its end begins no line. */
export const splitLines = (text) => (text === "" ? [] : (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n"));

/** What leads from the lines `a` to `b`: [{kind: same | gone | new, text, a, b}], where `a` and `b` are line numbers from 0. */
export function compareLines(a, b) {
  const [start, endA, endB] = trimSame(a, b);
  const rows = [];
  for (let n = 0; n < start; n++) rows.push({ kind: "same", text: a[n], a: n, b: n });
  rows.push(...compareMiddle(a.slice(start, endA), b.slice(start, endB)).map((row) => ({ ...row, a: row.a + start, b: row.b + start })));
  for (let n = 0; endA + n < a.length; n++) rows.push({ kind: "same", text: a[endA + n], a: endA + n, b: endB + n });
  return rows;
}

function trimSame(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  return [start, endA, endB];
}

const LONGEST = 4000;

/** Myers' greedy comparison; of texts that have little in common everything is gone and new. */
function compareMiddle(a, b) {
  const most = Math.min(a.length + b.length, LONGEST);
  const trail = [];
  let reach = new Map([[1, 0]]);
  for (let edits = 0; edits <= most; edits++) {
    trail.push(new Map(reach));
    for (let k = -edits; k <= edits; k += 2) {
      const isDown = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = isDown ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(a, b, trail);
    }
  }
  return [...a.map((text, n) => ({ kind: "gone", text, a: n, b: 0 })), ...b.map((text, n) => ({ kind: "new", text, a: a.length, b: n }))];
}

function walkBack(a, b, trail) {
  const rows = [];
  let [x, y] = [a.length, b.length];
  for (let edits = trail.length - 1; edits >= 0; edits--) {
    const reach = trail[edits];
    const k = x - y;
    const isDown = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const before = isDown ? k + 1 : k - 1;
    const beforeX = edits === 0 ? 0 : (reach.get(before) ?? 0);
    const beforeY = edits === 0 ? 0 : beforeX - before;
    while (x > beforeX && y > beforeY) [x, y] = [x - 1, y - 1], rows.push({ kind: "same", text: a[x], a: x, b: y });
    if (edits === 0) break;
    if (isDown) rows.push({ kind: "new", text: b[(y -= 1)], a: x, b: y });
    else rows.push({ kind: "gone", text: a[(x -= 1)], a: x, b: y });
  }
  return rows.reverse();
}

/** The rows of a comparison that a person reads: changes with `around` lines about them, and {kind: "gap", count} between. */
export function foldSame(rows, around = 3) {
  const isNear = rows.map(() => false);
  rows.forEach((row, at) => {
    if (row.kind !== "same") for (let n = Math.max(0, at - around); n <= Math.min(rows.length - 1, at + around); n++) isNear[n] = true;
  });
  const runs = isNear.map((near, at) => !near && !isNear[at - 1] && !isNear[at + 1]);
  const folded = [];
  rows.forEach((row, at) => {
    if (isNear[at] || runs[at]) folded.push(row);
    else if (folded.at(-1)?.kind === "gap") folded.at(-1).count += 1;
    else folded.push({ kind: "gap", count: 1 });
  });
  return folded;
}

/** How many lines are new and gone: {added, removed}. */
export function countChanges(rows) {
  return { added: rows.filter(({ kind }) => kind === "new").length, removed: rows.filter(({ kind }) => kind === "gone").length };
}

/** `own` with what changed from `before` to `after`, where `before` is how a program writes what `own` says: lines that did
 *  not change stay as their writer has them. */
export function keepLines(own, before, after) {
  if (own === before) return after;
  const base = splitLines(before);
  const written = matchLines(base, splitLines(own));
  const changed = matchLines(base, splitLines(after));
  const [ownLines, newLines] = [splitLines(own), splitLines(after)];
  const out = [];
  let [at, fromOwn, fromNew] = [0, 0, 0];
  for (let n = 0; n <= base.length; n++) {
    const isEnd = n === base.length;
    if (!isEnd && (written[n] === null || changed[n] === null)) continue;
    const [toOwn, toNew] = isEnd ? [ownLines.length, newLines.length] : [written[n], changed[n]];
    const isUnchanged = newLines.slice(fromNew, toNew).join("\n") === base.slice(at, n).join("\n");
    out.push(...(isUnchanged ? ownLines.slice(fromOwn, toOwn) : newLines.slice(fromNew, toNew)));
    if (isEnd) break;
    out.push(ownLines[toOwn]);
    [at, fromOwn, fromNew] = [n + 1, toOwn + 1, toNew + 1];
  }
  return `${out.join("\n")}\n`;
}

/** For each line of `a` the line of `b` that it is, or null. */
function matchLines(a, b) {
  const found = a.map(() => null);
  for (const row of compareLines(a, b)) if (row.kind === "same") found[row.a] = row.b;
  return found;
}
