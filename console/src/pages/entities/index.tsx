import { Button } from "@patternfly/react-core/dist/esm/components/Button";

import { isWhole } from "../../model/rows";
import type { RouterTables } from "../../model/types";
import { Page } from "../../parts";
import { useSchema, useSession, useTables } from "../../store";
import { RouterProblem } from "../common/RouterProblem";
import { Choice } from "./Choice";
import { Detail } from "./Detail";
import { EntityForm } from "./EntityForm";
import { EntityTable } from "./EntityTable";
import { useEntityLocation } from "./location";
import { entityRows } from "./rows";

const EVERY_MS = 5_000;

/** Shows the entities of a type in a table, one entity in full, and the forms that create, change and delete entities. */
export default function Entities() {
  const [location, go] = useEntityLocation();
  const { entity, router, identity, action } = location;
  const schema = useSchema();
  const { routers, can } = useSession();
  const snapshot = useTables({ [entity]: "all" }, EVERY_MS, router === "" ? undefined : [router]);
  const type = schema.types[entity];
  const rows = entityRows(snapshot, entity, router);
  const selectedRouters = snapshot.routers.filter((one) => router === "" || one.id === router);
  const problemOf = (one: RouterTables): string | undefined => one.refused?.[entity] ?? one.error;
  const isAwaited = (one: RouterTables): boolean => !isWhole(one, entity) && problemOf(one) === undefined;
  const found = identity === "" ? undefined : rows.find((row) => row.identity === identity);
  const target = routers.find((one) => one.id === (router || routers[0]?.id));
  const isTable = identity === "" && action === "";
  const actions = isTable && can("CREATE", entity) && (
    <Button onClick={() => go({ action: "create", router: target?.id ?? "" })}>Create {entity}</Button>
  );
  return (
    <Page title="Entities" actions={actions}>
      <Choice location={location} onChange={go} />
      {selectedRouters.map((one) => problemOf(one) !== undefined && <RouterProblem key={one.id} id={one.id} problem={problemOf(one) ?? ""} />)}
      {isTable && (
        <EntityTable
          key={entity}
          location={location}
          type={type}
          rows={rows}
          isLoading={selectedRouters.every(isAwaited)}
          onOpen={(row) => go({ router: row.router, identity: row.identity })}
          onFilter={(filter) => go({ filter })}
        />
      )}
      {action === "create" && type !== undefined && target !== undefined && (
        <EntityForm type={type} router={target} onDone={(made) => go({ action: "", identity: made ?? "" })} />
      )}
      {identity !== "" && action !== "create" && (
        <Detail location={location} type={type} found={found} isLoading={selectedRouters.some(isAwaited)} go={go} />
      )}
    </Page>
  );
}
