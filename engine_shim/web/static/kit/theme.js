// Light or dark: as the system has it, or as the user chose.

const KEY = "agent-core.theme";

/** auto, light or dark. */
export function theme() {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto";
  }
}

/** Show the page so, and remember it. */
export function setTheme(mode) {
  if (mode === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = mode;
  try {
    localStorage.setItem(KEY, mode);
  } catch {
    // a page without storage keeps it until it is closed
  }
}
