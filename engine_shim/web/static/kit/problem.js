// Problem: what a server answers in place of what was asked.

/** Problem details of an answer. Status 0 is a server that cannot be reached. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? `HTTP ${status}`);
    this.status = status;
    this.kind = body.kind ?? "";
    this.errors = body.errors ?? [];
  }
}
