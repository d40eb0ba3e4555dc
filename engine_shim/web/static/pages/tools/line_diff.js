// What is different between two texts, line by line. Pure.

const MOST = 4_000_000;
/** So many pairs of lines are compared at most; texts beyond that are shown one after the other. */

/** The lines of both texts in their order: [sign, line], the sign being " " in both, "-" before alone, "+" after alone. */
export function diffLines(before, after) {
  const [old, now] = [split(before), split(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const kept = (lines) => lines.map((line) => [" ", line]);
  const middle = compare(old.slice(start, old.length - end), now.slice(start, now.length - end));
  return [...kept(old.slice(0, start)), ...middle, ...kept(old.slice(old.length - end))];
}

const split = (text) => (text === "" ? [] : text.split("\n"));

function compare(old, now) {
  const apart = [...old.map((line) => ["-", line]), ...now.map((line) => ["+", line])];
  if (old.length * now.length > MOST || old.length === 0 || now.length === 0) return apart;
  const lengths = measure(old, now);
  const width = now.length + 1;
  const found = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) found.push([" ", old[i++], j++]);
    else if (j >= now.length || (i < old.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) found.push(["-", old[i++]]);
    else found.push(["+", now[j++]]);
  }
  return found.map(([sign, line]) => [sign, line]);
}

/** By line of both, how many lines the rests have in common. */
function measure(old, now) {
  const width = now.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = now.length - 1; j >= 0; j -= 1)
      lengths[i * width + j] = old[i] === now[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
  return lengths;
}
