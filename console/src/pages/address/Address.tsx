import { useEffect, useMemo, useState, type SyntheticEvent } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { useSearchParams } from "react-router-dom";

import { ADDRESS_TABLES, addressesOf } from "../../model/address";
import { cut, shown } from "../../model/text";
import { Page } from "../../parts";
import { useSupportedTables } from "../common/tables";
import { TextField } from "../common/Field";
import { AddressList } from "./AddressList";
import { Details } from "./Details";

const EVERY_MS = 2_000;
/** Characters of an address in the URL, at most: trouter refuses longer addresses. */
const MAX_CHARACTERS = 4_096;

/** Shows the operator one address: why its messages flow or not, its producers and consumers, and the outcomes of deliveries. */
export default function Address() {
  const [search, setSearch] = useSearchParams();
  const name = search.get("name") ?? "";
  const snapshot = useSupportedTables(ADDRESS_TABLES, EVERY_MS);
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

interface Props {
  readonly name: string;
  readonly names: readonly string[];
  readonly onChoose: (name: string) => void;
}

function Search({ name, names, onChoose }: Props) {
  const [text, setText] = useState(name);
  useEffect(() => setText(name), [name]);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    onChoose(text);
  };
  return (
    <form className="console-form console-search" onSubmit={submit} role="search">
      <TextField label="Address" value={text} onChange={setText} suggestions={names} />
      <Button type="submit">Show address</Button>
      {name !== "" && (
        <Button variant="link" onClick={() => onChoose("")}>
          All addresses
        </Button>
      )}
    </form>
  );
}
