// What fields suggest while something is typed into them: models and agents that are known, and origins.

import { html } from "../vendor/preact.js";
import { listNodes } from "./flow.js";

/** The list of each key that has one. */
export const LISTS = { model: "known-models", agent: "known-agents" };
const ORIGINS = ["author", "user", "person", "trusted", "any"];

/** The lists: models that this workflow and the host's agents use, the agents, and what arguments may come from. */
export function Suggestions({ data, tools, agents }) {
  const models = [...listNodes(data).map(({ node }) => node.config?.model), ...agents.map(({ model }) => model)];
  return html`<${List} id=${LISTS.model} values=${models} /><${List} id=${LISTS.agent} values=${agents.map(({ name }) => name)} />
    <${List} id="origins" values=${[...ORIGINS, ...tools.map(({ code }) => code)]} />`;
}

function List({ id, values }) {
  const known = [...new Set(values)].filter((each) => typeof each === "string" && each && !each.includes("{{"));
  return html`<datalist id=${id}>${known.map((each) => html`<option value=${each} />`)}</datalist>`;
}
