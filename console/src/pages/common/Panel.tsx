import type { ReactNode } from "react";
import { Card, CardBody, CardTitle } from "@patternfly/react-core/dist/esm/components/Card";

import type { TableAbsence } from "./tables";
import "./common.css";

const ABSENCE_TEXTS: Readonly<Record<TableAbsence, string>> = {
  refused: "Not allowed: the policy does not show this to your login.",
  absent: "The router does not report this: its version does not support it.",
  pending: "Waiting for the router.",
};

interface Props {
  readonly title: ReactNode;
  readonly id?: string;
  /** Why the table is absent; a text about it then replaces the children. */
  readonly absence?: TableAbsence | undefined;
  readonly children: ReactNode;
  readonly isWide?: boolean;
}

/** Shows a part of a page with a heading, or the reason why its table is absent. */
export function Panel({ title, id, absence, children, isWide = false }: Props) {
  return (
    <Card id={id} component="section" isCompact className={isWide ? "console-panel console-wide" : "console-panel"}>
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody>{absence === undefined ? children : <p className="console-subtle">{ABSENCE_TEXTS[absence]}</p>}</CardBody>
    </Card>
  );
}

/** Shows one number with its name and unit; callers pass "–" for an unknown value. */
export function Figure({ name, value, unit = "" }: { name: string; value: string; unit?: string }) {
  return (
    <div className="console-figure">
      <dt>{name}</dt>
      <dd>
        {value}
        {unit !== "" && value !== "–" && <span className="console-unit"> {unit}</span>}
      </dd>
    </div>
  );
}
