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
  const isLone = isNear.map((near, at) => !near && (isNear[at - 1] ?? true) && (isNear[at + 1] ?? true));
  const folded = [];
  rows.forEach((row, at) => {
    if (isNear[at] || isLone[at]) folded.push(row);
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
  const changes = findHunks(base, splitLines(after));
  const written = findHunks(base, splitLines(own), joinSpaces).flatMap(splitHunk);
  const kept = written.filter((each) => !changes.some((change) => isOverlapping(each, change)));
  const out = [];
  let at = 0;
  for (const { from, to, lines } of [...kept, ...changes].sort((a, b) => a.from - b.from || a.to - b.to)) {
    out.push(...base.slice(at, from), ...lines);
    at = to;
  }
  return `${[...out, ...base.slice(at)].join("\n")}\n`;
}

/** The text of a line without the spaces that align what stands in it. */
const joinSpaces = (line) => line.replace(/(\S)[ \t]+/g, "$1 ");

/** What is different: [{from, to, lines}], lines in place of those of `a` from `from` up to `to`. */
function findHunks(a, b, plain = (line) => line) {
  const hunks = [];
  let open = null;
  for (const row of compareLines(a.map(plain), b.map(plain))) {
    if (row.kind === "same") {
      open = null;
      if (a[row.a] !== b[row.b]) hunks.push({ from: row.a, to: row.a + 1, lines: [b[row.b]] });
      continue;
    }
    if (!open) hunks.push((open = { from: row.a, to: row.a, lines: [] }));
    if (row.kind === "gone") open.to = row.a + 1;
    else open.lines.push(b[row.b]);
  }
  return hunks;
}

/** Line for line, where there are as many as before. */
function splitHunk({ from, to, lines }) {
  return to - from === lines.length ? lines.map((line, at) => ({ from: from + at, to: from + at + 1, lines: [line] })) : [{ from, to, lines }];
}

function isOverlapping(a, b) {
  if (a.from === a.to) return b.from < a.from && a.from < b.to;
  if (b.from === b.to) return a.from < b.from && b.from < a.to;
  return a.from < b.to && b.from < a.to;
}
