/** The one connection of the console, for the modules of the store; components use the hooks. */

import type { AmqpConnection } from "../amqp/connection";
import { ManagementError } from "../amqp/errors";
import { ask, type ManagementRequest } from "../amqp/management";
import type { Value } from "../model/types";

let open: AmqpConnection | undefined;

/** Make `connection` the one that requests go over. */
export function setLink(connection: AmqpConnection | undefined): void {
  open = connection;
}

/** The open connection; undefined while there is none. */
export function link(): AmqpConnection | undefined {
  return open;
}

/**
 * Send one request to the management node of the router at the address `router` ("" for the one connected to) and return
 * the body of its answer: operation "READ", "CREATE", "UPDATE", "DELETE", "GET-LOG", "EXPLAIN" and so on. ManagementError
 * with the status and the description of a refusal, or status 0 if no answer came.
 */
export async function manage(router: string, request: ManagementRequest): Promise<Value> {
  if (open === undefined) throw new ManagementError(0, "The console is not connected.");
  return ask(open, router, request);
}
