import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/esm/components/ToggleGroup";

interface Props<T extends string> {
  readonly label: string;
  readonly choices: readonly (readonly [T, string])[];
  readonly chosen: T;
  readonly onChoose: (value: T) => void;
}

/** Lets the user choose one of a few values by buttons. */
export function Choice<T extends string>({ label, choices, chosen, onChoose }: Props<T>) {
  return (
    <ToggleGroup aria-label={label}>
      {choices.map(([value, text]) => (
        <ToggleGroupItem key={value} text={text} isSelected={value === chosen} onChange={() => onChoose(value)} />
      ))}
    </ToggleGroup>
  );
}
