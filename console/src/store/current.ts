/** The console's one connection, for the modules of the store; components use the hooks. */

import type { AmqpConnection } from "../amqp/connection";
import { ManagementError } from "../amqp/errors";
import { requestBody, type ManagementRequest } from "../amqp/management";
import type { Value } from "../model/types";

let current: AmqpConnection | undefined;

/** Set the connection that requests are sent on; undefined while there is none. */
export function setCurrentConnection(connection: AmqpConnection | undefined): void {
  current = connection;
}

/** Return the open connection; undefined while there is none. */
export function currentConnection(): AmqpConnection | undefined {
  return current;
}

/**
 * Send one request to the management node of the router at the address `router` ("" for the connected router) and return the
 * body of the answer. Throw ManagementError with the router's status and description if it refuses, with status 0 if no
 * answer comes.
 */
export async function manage(router: string, request: ManagementRequest): Promise<Value> {
  if (current === undefined) throw new ManagementError(0, "The console is not connected.");
  return requestBody(current, router, request);
}
