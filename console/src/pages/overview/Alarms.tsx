import { Label } from "@patternfly/react-core/dist/esm/components/Label";
import { Link } from "react-router-dom";

import type { Alarm, Severity } from "../../model/alarms";
import { shown } from "../../model/text";
import { Panel } from "../common/Panel";

const LABELS: Readonly<Record<Severity, readonly ["red" | "yellow" | "blue", "danger" | "warning" | "info", string]>> = {
  danger: ["red", "danger", "Critical"],
  warning: ["yellow", "warning", "Warning"],
  info: ["blue", "info", "Note"],
};

/** Lists the alarms for the operator, each with a link to the page with its details. */
export function Alarms({ alarms }: { alarms: readonly Alarm[] }) {
  const title = alarms.length === 0 ? "Alarms" : `Alarms (${alarms.length})`;
  return (
    <Panel title={title} id="overview-alarms">
      {alarms.length === 0 ? (
        <p className="console-subtle">No alarms.</p>
      ) : (
        // The list scrolls, so the keyboard must reach it.
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <div className="console-bounded" tabIndex={0} role="region" aria-label="List of alarms">
          <ul className="console-list" aria-label="Alarms">
            {alarms.map((alarm) => (
              <Item key={alarm.key} alarm={alarm} />
            ))}
          </ul>
        </div>
      )}
    </Panel>
  );
}

function Item({ alarm }: { alarm: Alarm }) {
  const [, status, word] = LABELS[alarm.severity];
  return (
    <li className="console-item">
      <Label status={status} isCompact>
        {word}
      </Label>
      <Link to={alarm.to}>
        <bdi>{alarm.title}</bdi>
      </Link>
      <span className="console-subtle">
        <bdi>{shown(alarm.router)}</bdi>
        {alarm.detail !== "" && (
          <>
            {": "}
            <bdi>{shown(alarm.detail, 300)}</bdi>
          </>
        )}
      </span>
    </li>
  );
}
