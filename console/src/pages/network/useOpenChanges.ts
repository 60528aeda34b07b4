/** The changes over the network that are open, requested from each router while the page is open. */

import { useEffect, useMemo, useState } from "react";

import { changeOf, openChanges, type OpenChange, type RouterChange } from "../../model/changes";
import type { RouterTables } from "../../model/types";
import { manage, ManagementError } from "../../store";
import { repeat } from "../common/repeat";

type Asked = readonly Pick<RouterTables, "id" | "address">[];

/** Return the changes that are open at some of these routers. A router that refuses the request has none, and is not asked again. */
export function useOpenChanges(routers: Asked, everyMs: number): readonly OpenChange[] {
  const [changes, setChanges] = useState<ReadonlyMap<string, RouterChange>>(new Map());
  const key = JSON.stringify(routers.map(({ id, address }) => ({ id, address })));
  useEffect(() => {
    const asked = JSON.parse(key) as Asked;
    const refusing = new Set<string>();
    let isOpen = true;
    const ask = async (id: string, address: string): Promise<readonly [string, RouterChange | null]> => {
      try {
        return [id, changeOf(await manage(address, { operation: "GET-CHANGE" }))];
      } catch (error) {
        if (error instanceof ManagementError && error.status >= 400) refusing.add(id);
        return [id, null];
      }
    };
    const askAll = async (): Promise<void> => {
      const answers = await Promise.all(asked.filter(({ id }) => !refusing.has(id)).map(({ id, address }) => ask(id, address)));
      if (isOpen) setChanges(new Map(answers.filter((each): each is readonly [string, RouterChange] => each[1] !== null)));
    };
    const stop = repeat(askAll, everyMs);
    return () => {
      isOpen = false;
      stop();
    };
  }, [key, everyMs]);
  return useMemo(() => openChanges(changes), [changes]);
}
