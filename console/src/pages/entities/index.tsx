import { Button } from "@patternfly/react-core/dist/esm/components/Button";

import type { RouterTables } from "../../model/types";
import { Page } from "../../parts";
import { useSchema, useSession, useTables } from "../../store";
import { RouterProblem } from "../common/RouterProblem";
import { Choice } from "./Choice";
import { Detail } from "./Detail";
import { EntityForm } from "./EntityForm";
import { EntityTable } from "./EntityTable";
import { usePlace } from "./place";
import { rowsOf } from "./rows";

const EVERY_MS = 5_000;

/** Every type of the schema as a table, one entity of it in full, and the forms that change it. */
export default function Entities() {
  const [place, go] = usePlace();
  const { entity, router, identity, does } = place;
  const schema = useSchema();
  const { routers, can } = useSession();
  const snapshot = useTables({ [entity]: "all" }, EVERY_MS, router === "" ? undefined : [router]);
  const type = schema.types[entity];
  const rows = rowsOf(snapshot, entity, router);
  const looked = snapshot.routers.filter((one) => router === "" || one.id === router);
  const problemOf = (one: RouterTables): string | undefined => one.refused?.[entity] ?? one.error;
  const isAwaited = (one: RouterTables): boolean => one.tables[entity] === undefined && problemOf(one) === undefined;
  const found = identity === "" ? undefined : rows.find((row) => row.identity === identity);
  const target = routers.find((one) => one.id === (router || routers[0]?.id));
  const isTable = identity === "" && does === "";
  const actions = isTable && can("CREATE", entity) && (
    <Button onClick={() => go({ does: "create", router: target?.id ?? "" })}>Create {entity}</Button>
  );
  return (
    <Page title="Entities" actions={actions}>
      <Choice place={place} onChange={go} />
      {looked.map((one) => problemOf(one) !== undefined && <RouterProblem key={one.id} id={one.id} problem={problemOf(one) ?? ""} />)}
      {isTable && (
        <EntityTable
          key={entity}
          place={place}
          type={type}
          rows={rows}
          isLoading={looked.every(isAwaited)}
          onOpen={(row) => go({ router: row.router, identity: row.identity })}
          onFilter={(filter) => go({ filter })}
        />
      )}
      {does === "create" && type !== undefined && target !== undefined && (
        <EntityForm type={type} router={target} onDone={(made) => go({ does: "", identity: made ?? "" })} />
      )}
      {identity !== "" && does !== "create" && (
        <Detail place={place} type={type} found={found} isLoading={looked.some(isAwaited)} go={go} />
      )}
    </Page>
  );
}
