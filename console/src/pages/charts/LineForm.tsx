import { useMemo, useState, type SyntheticEvent } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";

import { parseKey } from "../../model/addresskey";
import { ALL, type Line } from "../../model/charts";
import { textOf } from "../../model/numbers";
import type { Row, Schema, Snapshot } from "../../model/types";
import { useSchema, useSession, useTables, type Wanted } from "../../store";
import { ChoiceField } from "../common/Field";

const EVERY_MS = 5_000;
/** Rows that the form offers, at most. */
const MAX_ROWS = 500;

interface Props {
  readonly action: string;
  readonly onChoose: (line: Line) => void;
  readonly onCancel: () => void;
}

/** Return the numeric attributes of a type, those that the schema marks for graphs first. */
function numbersOf(schema: Schema, entity: string): string[] {
  const all = Object.entries(schema.types[entity]?.attributes ?? {}).filter(([, each]) => each.type === "integer");
  const isMarked = (name: string): boolean => schema.types[entity]?.attributes[name]?.graph === true;
  return all.map(([name]) => name).sort((one, other) => Number(isMarked(other)) - Number(isMarked(one)));
}

/** Return the name of a row; for an address its text, without the letter and phase of its key. */
function nameOf(entity: string, row: Row): string {
  const name = ["name", "key", "owningAddr", "host", "identity"].map((each) => textOf(row[each])).find((text) => text !== "") ?? "";
  return entity === "router.address" ? parseKey(name).text : name;
}

/** Return the label of a row in the form: links have their address and direction too, addresses that are not mobile their kind. */
function labelOf(entity: string, row: Row): string {
  const name = nameOf(entity, row);
  if (entity === "router.link") return `${name} (${textOf(row["linkDir"])} ${parseKey(textOf(row["owningAddr"])).text}, link ${textOf(row["identity"])})`;
  const { kind } = parseKey(textOf(row["name"]));
  return entity === "router.address" && kind !== "mobile" && kind !== "" ? `${name} (${kind})` : name;
}

function selectableRows(snapshot: Snapshot, router: string, entity: string): Row[] {
  const found = new Map<string, Row>();
  for (const each of snapshot.routers)
    if (router === ALL || each.id === router)
      for (const row of each.tables[entity] ?? []) found.set(textOf(row["identity"]), row);
  return [...found.values()].slice(0, MAX_ROWS);
}

/** Lets the user choose a router, type, row and attribute for a line of a chart. */
export function LineForm({ action, onChoose, onCancel }: Props) {
  const schema = useSchema();
  const { routers } = useSession();
  const types = useMemo(
    () => Object.values(schema.types).filter((type) => !type.deprecated && numbersOf(schema, type.name).some((name) => type.attributes[name]?.graph === true)).map((type) => type.name),
    [schema],
  );
  const [router, setRouter] = useState(ALL);
  const [entity, setEntity] = useState("router");
  const [identity, setIdentity] = useState("");
  const [attribute, setAttribute] = useState("");
  const [isRate, setIsRate] = useState(true);
  const wanted = useMemo<Wanted>(() => ({ [entity]: "all" }), [entity]);
  const rows = selectableRows(useTables(wanted, EVERY_MS), router, entity);
  const attributes = useMemo(() => numbersOf(schema, entity), [schema, entity]);
  const row = rows.find((each) => textOf(each["identity"]) === identity) ?? rows[0];
  const chosen = attributes.includes(attribute) ? attribute : attributes[0];
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (row === undefined || chosen === undefined) return;
    onChoose({ router, entity, identity: textOf(row["identity"]), attribute: chosen, isRate, name: nameOf(entity, row).slice(0, 200) });
  };
  return (
    <form className="console-form" onSubmit={submit}>
      <ChoiceField
        label="Router"
        value={router}
        onChange={setRouter}
        options={[[ALL, "Every router"], ...routers.map((each) => [each.id, each.id] as const)]}
      />
      <ChoiceField label="Type" value={entity} onChange={setEntity} options={types.map((each) => [each, each])} />
      <ChoiceField
        label="Row"
        value={row === undefined ? "" : textOf(row["identity"])}
        onChange={setIdentity}
        options={rows.length === 0 ? [["", "no rows"]] : rows.map((each) => [textOf(each["identity"]), labelOf(entity, each)])}
      />
      <ChoiceField
        label="Attribute"
        value={chosen ?? ""}
        onChange={setAttribute}
        options={attributes.map((each) => [each, each])}
      />
      <ChoiceField
        label="Show"
        value={isRate ? "rate" : "value"}
        onChange={(each) => setIsRate(each === "rate")}
        options={[["rate", "Rate per second"], ["value", "Value"]]}
      />
      <Button type="submit" isDisabled={row === undefined || chosen === undefined}>
        {action}
      </Button>
      <Button variant="link" onClick={onCancel}>
        Cancel
      </Button>
    </form>
  );
}
