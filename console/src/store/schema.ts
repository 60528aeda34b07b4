/** The schema of the router that the console is connected to. */

import { create } from "zustand";

import { parseSchema } from "../amqp/management";
import type { Schema } from "../model/types";
import { manage } from "./current";

const store = create<Schema>(() => ({ prefix: "", types: {} }));

/** Fetch the schema from the connected router; throw ManagementError if it refuses or does not answer. */
export async function fetchSchema(): Promise<void> {
  store.setState(parseSchema(await manage("", { operation: "GET-SCHEMA" })), true);
}

/** Return the schema outside of components. */
export const schemaNow = (): Schema => store.getState();

/** Return the schema; without types until it has arrived. */
export const useSchema = (): Schema => store();
