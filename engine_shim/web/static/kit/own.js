// A look into a table by a word of a stranger. Pure.

/** What a table itself has under a key: "constructor" and "__proto__" are in none. */
export const own = (table, key) => (Object.hasOwn(table, key) ? table[key] : undefined);
