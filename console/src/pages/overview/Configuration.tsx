import { Label } from "@patternfly/react-core/dist/esm/components/Label";

import { textOf } from "../../model/numbers";
import { shown } from "../../model/text";
import type { Snapshot } from "../../model/types";
import { useTableAbsence } from "../common/tables";
import { Panel } from "../common/Panel";

const WORDS: Readonly<Record<string, readonly ["danger" | "warning" | "info", string]>> = {
  problem: ["danger", "Not served"],
  unsafe: ["warning", "Unsafe"],
  warning: ["info", "Note"],
  accepted: ["info", "Accepted"],
};
const RANK = ["problem", "unsafe", "warning", "accepted"];

/** Lists the findings of all routers about their configuration, the most serious first, accepted ones last. */
export function Configuration({ snapshot }: { snapshot: Snapshot }) {
  const absence = useTableAbsence(snapshot, "finding");
  const found = snapshot.routers
    .flatMap((router) => (router.tables["finding"] ?? []).map((row) => ({ router: router.id, row })))
    .sort((one, other) => RANK.indexOf(textOf(one.row["severity"])) - RANK.indexOf(textOf(other.row["severity"])));
  return (
    <Panel title="Configured and not served" id="overview-configuration" absence={absence} isWide>
      {found.every(({ row }) => row["severity"] !== "problem") && <p>Everything that is configured is served.</p>}
      {found.length > 0 && (
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <div className="console-bounded" tabIndex={0} role="region" aria-label="Findings about the configuration">
          <ul className="console-list" aria-label="Findings">
            {found.map(({ router, row }) => {
              const [status, word] = WORDS[textOf(row["severity"])] ?? ["info", textOf(row["severity"])];
              const told = textOf(row["reason"]) || textOf(row["cure"]);
              return (
                <li key={`${router} ${textOf(row["identity"])}`} className="console-item">
                  <Label status={status} isCompact>
                    {word}
                  </Label>
                  <bdi>
                    {shown(`${textOf(row["entity"]) || textOf(row["section"])}: ${textOf(row["message"])}`, 500)}
                  </bdi>
                  <span className="console-subtle">
                    <bdi>{shown(`${router}, ${textOf(row["place"])}${told === "" ? "" : `: ${told}`}`, 500)}</bdi>
                  </span>
                </li>
              );
            })}
          </ul>
        </div>
      )}
    </Panel>
  );
}
