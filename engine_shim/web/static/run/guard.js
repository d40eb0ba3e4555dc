// The guard of an exported page: it says that the page is damaged, also where the page's own script cannot be read any
// more. It is a script of its own, before all others, and needs nothing else of the page.

const DAMAGED = "Damaged: this page is not as it was written, so that nothing in it is proven. Ask for it anew. 已损坏：本页与写入时不一致，其中任何内容都未被证实。请重新获取。";

/** Say once, before all else, that the page is damaged, and by what. */
function tellDamage(why) {
  if (document.getElementById("damage")) return;
  const told = Object.assign(document.createElement("p"), { id: "damage", textContent: `${DAMAGED} (${why})` });
  told.setAttribute("role", "alert");
  document.body.prepend(told);
}

/** What happens before the run is shown is damage: afterwards the page itself says what it cannot draw. */
const isShown = () => document.documentElement.dataset.shown === "yes";
addEventListener("error", (event) => isShown() || tellDamage(event.message));
addEventListener("load", () => isShown() || tellDamage("its script did not run"));
