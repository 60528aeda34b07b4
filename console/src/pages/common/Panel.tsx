import type { ReactNode } from "react";
import { Card, CardBody, CardTitle } from "@patternfly/react-core/dist/esm/components/Card";

import type { Missing } from "./known";
import "./common.css";

const WORDS: Readonly<Record<Missing, string>> = {
  refused: "Not allowed: the policy does not show this to your login.",
  absent: "The router does not tell this: it is of another version.",
  pending: "Waiting for the router.",
};

interface Given {
  readonly title: ReactNode;
  readonly id?: string;
  /** Why there is nothing to show; the children are not drawn then. */
  readonly missing?: Missing | undefined;
  readonly children: ReactNode;
  readonly isWide?: boolean;
}

/** A part of a page with a heading; it says so where the policy or the router does not show what it is about. */
export function Panel({ title, id, missing, children, isWide = false }: Given) {
  return (
    <Card id={id} component="section" isCompact className={isWide ? "console-panel console-wide" : "console-panel"}>
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody>{missing === undefined ? children : <p className="console-subtle">{WORDS[missing]}</p>}</CardBody>
    </Card>
  );
}

/** One number with its name; "–" where it is not known. */
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
