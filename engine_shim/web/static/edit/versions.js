// Numbers of versions: how they sort, and which comes next. Pure.

/** The version after `newest` that is none of `known`: its last number is one more. */
export function nextVersion(newest, known = []) {
  let found = String(newest ?? "0");
  do found = /\d+(?=\D*$)/.test(found) ? found.replace(/\d+(?=\D*$)/, (digits) => String(BigInt(digits) + 1n)) : `${found}.1`;
  while (known.includes(found));
  return found;
}

/** The versions of each workflow, as the API lists them, newest first: [{id, name, description, versions}]. */
export function groupVersions(workflows) {
  const found = new Map();
  for (const { id, version, name, description } of workflows) {
    const group = found.get(id) ?? { id, name, description, versions: [] };
    group.versions.push(version);
    found.set(id, group);
  }
  return [...found.values()];
}
