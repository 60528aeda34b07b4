import { SearchInput } from "@patternfly/react-core/dist/esm/components/SearchInput";
import { useEffect, useState } from "react";

import { visible } from "../../model/text";

interface Given {
  readonly address: string | null;
  readonly offered: readonly string[];
  readonly onAddress: (address: string | null) => void;
}

/** An address to bring out; addresses that links have now are offered. */
export function AddressSearch({ address, offered, onAddress }: Given) {
  const [typed, setTyped] = useState(address ?? "");
  useEffect(() => setTyped(address ?? ""), [address]);
  return (
    <>
      <SearchInput
        className="topology-search"
        aria-label="Address whose messages to show"
        placeholder="Address"
        value={typed}
        list="topology-addresses"
        onChange={(_event, text) => {
          setTyped(text);
          if (offered.includes(text)) onAddress(text);
        }}
        onSearch={() => onAddress(typed)}
        onClear={() => onAddress(null)}
      />
      <datalist id="topology-addresses">
        {offered
          .filter((name) => name === visible(name))
          .map((name) => (
            <option key={name} value={name} />
          ))}
      </datalist>
    </>
  );
}
