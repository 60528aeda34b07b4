import { useState } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";

import { cut, visible } from "../model/text";
import type { Value as AmqpValue } from "../model/types";
import { jsonOf, textOf } from "./format";

/** What a cell shows at most, and what a detail shows before it is asked for the rest. */
const CELL_CHARACTERS = 200;
const DETAIL_CHARACTERS = 10_000;

/** Any AMQP value in one line that ends with an ellipsis where it was cut; what is invisible in it is written out. */
export function Value({ value }: { value: AmqpValue | undefined }) {
  const text = textOf(value);
  const short = cut(text, CELL_CHARACTERS);
  return (
    <bdi className="console-value" title={text === short ? undefined : `${text.length} characters`}>
      {short === text ? text : `${short}…`}
    </bdi>
  );
}

/** Any AMQP value in full: lines as they are, maps indented, what is longer than 10 kB behind a button. */
export function WholeValue({ value }: { value: AmqpValue | undefined }) {
  const [isWhole, setIsWhole] = useState(false);
  const isCompound = typeof value === "object" && value !== null;
  const text = isCompound ? jsonOf(value, 2).split("\n").map(visible).join("\n") : textOf(value);
  const part = isWhole ? text : cut(text, DETAIL_CHARACTERS);
  return (
    <span className="console-whole">
      <bdi className={isCompound ? "console-lines" : "console-text"}>{part}</bdi>
      {part !== text && (
        <Button variant="link" isInline onClick={() => setIsWhole(true)}>
          Show all {text.length} characters
        </Button>
      )}
    </span>
  );
}
