import { useState } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";

import { cut, visible } from "../model/text";
import type { Value as AmqpValue } from "../model/types";
import { jsonOf, displayText } from "./format";

/** Characters that a cell shows at most. */
const CELL_CHARACTERS = 200;
/** Characters that a detail shows before the user opens the rest. */
const DETAIL_CHARACTERS = 10_000;

/** Shows an AMQP value in one line, cut after 200 characters; invisible characters are written out. */
export function Value({ value }: { value: AmqpValue | undefined }) {
  const text = displayText(value);
  const short = cut(text, CELL_CHARACTERS);
  return (
    <bdi className="console-value" title={text === short ? undefined : `${text.length} characters`}>
      {short === text ? text : `${short}…`}
    </bdi>
  );
}

/** Shows an AMQP value in full, with its line breaks; maps are indented, a button opens what exceeds 10,000 characters. */
export function WholeValue({ value }: { value: AmqpValue | undefined }) {
  const [isWhole, setIsWhole] = useState(false);
  const isCompound = typeof value === "object" && value !== null;
  const text = isCompound ? jsonOf(value, 2).split("\n").map(visible).join("\n") : displayText(value);
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
