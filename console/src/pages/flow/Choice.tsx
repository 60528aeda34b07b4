import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/esm/components/ToggleGroup";

interface Given<T extends string> {
  readonly label: string;
  readonly choices: readonly (readonly [T, string])[];
  readonly chosen: T;
  readonly onChoose: (value: T) => void;
}

/** One of a few. */
export function Choice<T extends string>({ label, choices, chosen, onChoose }: Given<T>) {
  return (
    <ToggleGroup aria-label={label}>
      {choices.map(([value, text]) => (
        <ToggleGroupItem key={value} text={text} isSelected={value === chosen} onChange={() => onChoose(value)} />
      ))}
    </ToggleGroup>
  );
}
