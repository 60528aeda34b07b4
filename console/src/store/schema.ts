/** The schema of the router that the console is connected to. */

import { create } from "zustand";

import { schemaOf } from "../amqp/management";
import type { Schema } from "../model/types";
import { manage } from "./link";

const store = create<Schema>(() => ({ prefix: "", types: {} }));

/** Fetch the schema; ManagementError. */
export async function fetchSchema(): Promise<void> {
  store.setState(schemaOf(await manage("", { operation: "GET-SCHEMA" })), true);
}

/** The schema now, outside of components. */
export const schemaNow = (): Schema => store.getState();

/** The schema; without types until it has arrived. */
export const useSchema = (): Schema => store();
