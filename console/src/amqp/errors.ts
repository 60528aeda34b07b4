/** A management node refused a request, or did not answer it. */
export class ManagementError extends Error {
  /** The status code of the answer (400, 403, 404, ...); 0 if no answer came. */
  readonly status: number;
  /** The node's own text, or the reason why no answer came. */
  readonly description: string;

  constructor(status: number, description: string) {
    super(description);
    this.name = "ManagementError";
    this.status = status;
    this.description = description;
  }
}

/** The console could not connect or log in. */
export class ConnectError extends Error {
  /** "refused": the router refused the login; "no mechanism": the listener wants another mechanism; "unreachable": no connection. */
  readonly reason: "refused" | "no mechanism" | "unreachable";
  /** The SASL mechanisms that the listener offered. */
  readonly offered: readonly string[];

  constructor(reason: ConnectError["reason"], description: string, offered: readonly string[]) {
    super(description);
    this.name = "ConnectError";
    this.reason = reason;
    this.offered = offered;
  }
}
