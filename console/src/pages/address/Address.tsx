import { useEffect, useMemo, useState, type SyntheticEvent } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { useSearchParams } from "react-router-dom";

import { ADDRESS_TABLES, addressesOf } from "../../model/address";
import { cut, shown } from "../../model/text";
import { Page } from "../../parts";
import { useKnownTables } from "../common/known";
import { TextField } from "../common/Field";
import { AddressList } from "./AddressList";
import { Details } from "./Details";

const EVERY_MS = 2_000;
/** As long as the longest address that a router looks at. */
const MAX_CHARACTERS = 4_096;

/** One address: why it flows or does not, who sends and receives, and what became of deliveries. */
export default function Address() {
  const [search, setSearch] = useSearchParams();
  const name = search.get("name") ?? "";
  const snapshot = useKnownTables(ADDRESS_TABLES, EVERY_MS);
  const choose = (text: string): void => setSearch(text === "" ? {} : { name: cut(text, MAX_CHARACTERS) });
  const names = useMemo(() => addressesOf(snapshot).map((address) => address.text), [snapshot]);
  return (
    <Page title={name === "" ? "Address" : `Address ${shown(name, 60)}`}>
      <Search key={name} name={name} names={names} onChoose={choose} />
      {name === "" ? (
        <AddressList snapshot={snapshot} onOpen={choose} />
      ) : (
        <Details key={name} snapshot={snapshot} name={name} />
      )}
    </Page>
  );
}

interface Given {
  readonly name: string;
  readonly names: readonly string[];
  readonly onChoose: (name: string) => void;
}

function Search({ name, names, onChoose }: Given) {
  const [text, setText] = useState(name);
  useEffect(() => setText(name), [name]);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    onChoose(text);
  };
  return (
    <form className="console-form console-search" onSubmit={submit} role="search">
      <TextField label="Address" value={text} onChange={setText} suggestions={names} />
      <Button type="submit">Look at it</Button>
      {name !== "" && (
        <Button variant="link" onClick={() => onChoose("")}>
          All addresses
        </Button>
      )}
    </form>
  );
}
