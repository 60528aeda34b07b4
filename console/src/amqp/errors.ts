/** A request that a management node refused, or that had no answer. */
export class ManagementError extends Error {
  /** The code of the answer (400, 403, 404, ...); 0 when none came. */
  readonly status: number;
  readonly description: string;

  constructor(status: number, description: string) {
    super(description);
    this.name = "ManagementError";
    this.status = status;
    this.description = description;
  }
}

/** Why a connection did not come about. */
export class ConnectError extends Error {
  /** "refused": the login was; "no mechanism": the listener wants another way of logging in; "unreachable": no connection. */
  readonly reason: "refused" | "no mechanism" | "unreachable";
  /** The mechanisms that the listener offered. */
  readonly offered: readonly string[];

  constructor(reason: ConnectError["reason"], description: string, offered: readonly string[]) {
    super(description);
    this.name = "ConnectError";
    this.reason = reason;
    this.offered = offered;
  }
}
