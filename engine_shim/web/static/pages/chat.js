// Talk to an agent, with its steps beside it, and decide on its calls in place.

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { ask, Problem } from "../kit/api.js";
import { announce, Button, Dialog, Failure, Field, Loading, Notice, useAct, useAnswer } from "../kit/parts.js";
import { go, link } from "../kit/router.js";
import { onOneLine, show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { Composer } from "./chat/composer.js";
import { ConversationList } from "./chat/conversation_list.js";
import { forgetRecent, joinRecent, readRecent } from "./chat/recent.js";
import { TurnView } from "./chat/turn_view.js";
import { useConversation } from "./chat/use_conversation.js";

const NEAR_END = 80;

export function ChatPage({ conversation, query, me }) {
  const agents = useAnswer((signal) => ask("agents", { signal }), []);
  const listed = useAnswer(readListed, []);
  const talk = useConversation(conversation, listed.load);
  const conversations = joinRecent(readRecent(), listed.data ?? []);
  if (!agents.data) return agents.error ? html`<${Failure} error=${agents.error} again=${agents.load} />` : html`<${Loading} />`;
  const known = agents.data.agents;
  const agent = pick(known, talk.agent ?? query.get("agent"));
  return html`<div class="chat">
    <details class="talks-fold"><summary>${t("Conversations")}</summary><${ConversationList} conversations=${conversations} chosen=${conversation} /></details>
    <div class="talks-side"><${ConversationList} conversations=${conversations} chosen=${conversation} /></div>
    <div class="chat-main">
      <${Head} key=${conversation} agents=${known} agent=${agent} conversation=${conversation} talk=${talk} me=${me} onDeleted=${listed.load} />
      <${Failure} error=${talk.error} />
      <${Messages} talk=${talk} me=${me} agent=${agent} />
      <${Composer} why=${whyNot(me, agent)} isWaiting=${talk.isBusy || !talk.isLoaded} onSend=${(message, limits) => talk.send(message, { agent: agent.name, limits })} />
    </div>
  </div>`;
}

const pick = (agents, name) => agents.find((each) => each.name === name) ?? agents[0] ?? null;

function whyNot(me, agent) {
  if (!agent) return t("This server has no agents.");
  return me.scopes.includes("run") ? "" : t("This needs a token with the scope {scope}.", { scope: "run" });
}

/** The conversations that the server keeps; none from one that cannot list them. */
async function readListed(signal) {
  try {
    return (await ask("agent/conversations", { signal })).conversations;
  } catch (error) {
    if (error instanceof Problem) return [];
    throw error;
  }
}

function Head({ agents, agent, conversation, talk, me, onDeleted }) {
  const [isAsked, setAsked] = useState(false);
  const mayNot = me.scopes.includes("run") ? undefined : t("This needs a token with the scope {scope}.", { scope: "run" });
  const remove = useAct(async () => {
    await ask(`agent/conversations/${encodeURIComponent(conversation)}`, { method: "DELETE" }).catch(passMissing);
    forgetRecent(conversation);
    announce(t("The conversation is deleted."));
    onDeleted();
    go(link("chat"));
  });
  return html`<div class="page-head chat-head"><h1>${t("Chat")}</h1>
    <${Field} inline label=${t("Agent")} render=${(props) => html`<select ...${props} value=${agent?.name ?? ""} disabled=${talk.turns.length > 0}
      title=${talk.turns.length > 0 ? t("A conversation stays with its agent.") : undefined} onChange=${(event) => go(link("chat", { agent: event.target.value }), { replace: true })}>
      ${agents.map((each) => html`<option key=${each.name} value=${each.name}>${onOneLine(each.name)}</option>`)}</select>`} />
    ${conversation && html`<${Button} kind="quiet" disabled=${Boolean(mayNot) || talk.isBusy} title=${mayNot} onClick=${() => setAsked(true)}>${t("Delete…")}<//>`}
    ${isAsked && html`<${Dialog} title=${t("Delete this conversation?")} onClose=${() => setAsked(false)}>
      <p>${t("Its messages are deleted. The records of its runs stay.")}</p><${Failure} error=${remove.error} />
      <div class="row"><${Button} kind="bad" busy=${remove.busy} onClick=${remove.act}>${t("Delete")}<//><${Button} onClick=${() => setAsked(false)}>${t("Back")}<//></div><//>`}
  </div>`;
}

function passMissing(error) {
  if (!(error instanceof Problem && error.status === 404)) throw error;
}

/** The turns. Who reads at the end stays there; who has scrolled up is not moved. */
function Messages({ talk, me, agent }) {
  const box = useRef(null);
  const isAtEnd = useRef(true);
  const [isAway, setAway] = useState(false);
  const toEnd = () => (box.current.scrollTop = box.current.scrollHeight);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => isAtEnd.current && toEnd());
    watcher.observe(box.current);
    watcher.observe(box.current.firstElementChild);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    isAtEnd.current = true;
    toEnd();
  }, [talk.id, talk.isLoaded, talk.turns.length]);
  const look = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
    setAway(!isAtEnd.current);
  };
  return html`<div class="turns-frame"><div class="turns" ref=${box} onScroll=${look} role="log" aria-label=${t("Conversation")} tabindex="0"><div class="turns-all">
      ${!talk.isLoaded && html`<${Loading} />`}
      ${talk.isLoaded && talk.turns.length === 0 && !talk.error && (agent ? html`<${Begin} agent=${agent} />` : html`<${NoAgent} />`)}
      ${talk.turns.map((turn) => html`<${TurnView} key=${turn.trace} turn=${turn} me=${me} onShowSteps=${talk.showSteps} />`)}
      ${!talk.isConnected && html`<${Notice} tone="wait" live title=${t("The server does not answer; trying again…")} />`}
    </div></div>
    ${isAway && html`<${Button} class="to-end" aria-label=${t("To the end")} onClick=${toEnd}>↓<//>`}
  </div>`;
}

/** What to do on a host without agents. */
function NoAgent() {
  return html`<${Notice} title=${t("This server has no agents.")}>
    <p>${t("An agent is a file such as {file} beside the host's configuration: its name, its model, and the tools that it may use. Start the server again once it is there.", { file: "agents/clerk.yaml" })}</p><//>`;
}

function Begin({ agent }) {
  return html`<div class="chat-begin"><h2>${onOneLine(agent.name)}</h2><p>${show(agent.description)}</p>
    <p class="soft">${onOneLine(agent.model)}</p>
    <p class="row">${agent.tools.map((code) => html`<a key=${code} href=${link(["tools", code])}><code>${onOneLine(code)}</code></a>`)}</p></div>`;
}
