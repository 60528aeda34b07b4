import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Checkbox } from "@patternfly/react-core/dist/esm/components/Checkbox";
import { SearchInput } from "@patternfly/react-core/dist/esm/components/SearchInput";
import { useMemo, useState } from "react";

import type { Flow } from "../../model/flow";
import { nameText } from "../../model/words";
import { colourOf } from "./ends";

interface Props {
  readonly title: string;
  readonly kind: "router" | "address";
  /** Names with the sum of their flows, the largest first. */
  readonly names: readonly (readonly [string, number])[];
  /** Null while all are chosen. */
  readonly chosen: ReadonlySet<string> | null;
  readonly onChoose: (chosen: ReadonlySet<string> | null) => void;
  readonly amount: (value: number) => string;
}

/** Boxes that are shown, at most; the search finds the others. */
const MAX_SHOWN = 12;

/** Return the names that flows have in `keys`, with the sums of their flows, the largest first. */
export function sumsBy(flows: readonly Flow[], ...keys: readonly ("from" | "to" | "address")[]): readonly (readonly [string, number])[] {
  const sums = new Map<string, number>();
  for (const flow of flows)
    for (const name of new Set(keys.map((key) => flow[key]))) sums.set(name, (sums.get(name) ?? 0) + flow.value);
  return [...sums].sort((one, other) => other[1] - one[1]);
}

/** Lets the user choose some of the addresses or routers; without a choice all are shown. */
export function Filters({ title, kind, names, chosen, onChoose, amount }: Props) {
  const [search, setSearch] = useState("");
  const known = useMemo(() => {
    const quiet = [...(chosen ?? [])].filter((name) => !names.some(([other]) => other === name));
    return [...names, ...quiet.map((name) => [name, 0] as const)];
  }, [names, chosen]);
  const found = known.filter(([name]) => nameText(name).toLowerCase().includes(search.toLowerCase()));
  const shown = found.filter(([name], index) => index < MAX_SHOWN || chosen?.has(name) === true);
  const toggle = (name: string, isChosen: boolean): void => {
    const next = new Set(chosen ?? []);
    if (isChosen) next.add(name);
    else next.delete(name);
    onChoose(next.size === 0 ? null : next);
  };
  return (
    <fieldset className="flow-filter">
      <legend>{title}</legend>
      {known.length > MAX_SHOWN && (
        <SearchInput aria-label={`Search ${title.toLowerCase()}`} value={search} onChange={(_event, text) => setSearch(text)} onClear={() => setSearch("")} />
      )}
      {shown.map(([name, value]) => (
        <Checkbox
          key={name}
          id={`flow-${kind}-${name}`}
          isChecked={chosen?.has(name) ?? false}
          onChange={(_event, isChecked) => toggle(name, isChecked)}
          label={
            <span className="flow-choice">
              <span className={`flow-swatch ${colourOf({ kind, name })}`} aria-hidden="true" />
              <bdi>{name === "" ? "(internal)" : nameText(name)}</bdi> <span className="flow-amount">{amount(value)}</span>
            </span>
          }
        />
      ))}
      {found.length > shown.length && <p className="flow-amount">{`and ${String(found.length - shown.length)} more: search for them`}</p>}
      {chosen !== null && (
        <Button variant="link" isInline onClick={() => onChoose(null)}>
          Show all
        </Button>
      )}
    </fieldset>
  );
}
