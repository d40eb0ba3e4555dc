// The worker that all tabs of a browser share: it holds the one connection by which their runs are followed. A browser
// opens six connections to a server at most, and each that is held is missing to all tabs.

import { RunStream } from "./run_stream.js";

const streams = new Map();

/** A connection for each token: what it may see is what its tabs may see. */
function streamOf(root, token) {
  const key = `${root} ${token ?? ""}`;
  if (!streams.has(key)) streams.set(key, new RunStream(root, token));
  return streams.get(key);
}

onconnect = ({ ports: [port] }) => {
  const followers = new Map();
  port.onmessage = ({ data: { kind, number, root, token, run, after } }) => {
    if (kind === "follow") {
      const follower = { run, after, tell: (told) => port.postMessage({ number, ...told }) };
      const stream = streamOf(root, token);
      followers.set(number, () => stream.remove(follower));
      stream.add(follower);
    } else {
      followers.get(number)?.();
      followers.delete(number);
    }
  };
};
