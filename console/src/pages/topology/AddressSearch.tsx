import { SearchInput } from "@patternfly/react-core/dist/esm/components/SearchInput";
import { useEffect, useState } from "react";

import { visible } from "../../model/text";

interface Props {
  readonly address: string | null;
  readonly offered: readonly string[];
  readonly onAddress: (address: string | null) => void;
}

/** Lets the user type or choose the address whose messages the picture highlights. */
export function AddressSearch({ address, offered, onAddress }: Props) {
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
