import {
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
} from "@patternfly/react-core/dist/esm/components/DescriptionList";

import type { Row } from "../../model/types";
import { WholeValue } from "../../parts";

/** Shows the attributes of one entity that have a value. */
export function Facts({ row, label }: { row: Row; label: string }) {
  const shown = Object.entries(row).filter(([, value]) => value !== null && value !== "");
  return (
    <DescriptionList isCompact isHorizontal aria-label={label} className="topology-facts">
      {shown.map(([name, value]) => (
        <DescriptionListGroup key={name}>
          <DescriptionListTerm>{name}</DescriptionListTerm>
          <DescriptionListDescription>
            <WholeValue value={value} />
          </DescriptionListDescription>
        </DescriptionListGroup>
      ))}
    </DescriptionList>
  );
}
