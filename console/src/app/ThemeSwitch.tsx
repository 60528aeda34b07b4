import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/esm/components/ToggleGroup";
import DesktopIcon from "@patternfly/react-icons/dist/esm/icons/desktop-icon";
import MoonIcon from "@patternfly/react-icons/dist/esm/icons/moon-icon";
import SunIcon from "@patternfly/react-icons/dist/esm/icons/sun-icon";

import { chooseTheme, useTheme, type Theme } from "./theme";

const CHOICES: readonly { theme: Theme; label: string; Icon: typeof SunIcon }[] = [
  { theme: "system", label: "Theme of the system", Icon: DesktopIcon },
  { theme: "light", label: "Light theme", Icon: SunIcon },
  { theme: "dark", label: "Dark theme", Icon: MoonIcon },
];

/** Lets the user choose the theme: the system's, light or dark. */
export function ThemeSwitch() {
  const { theme } = useTheme();
  return (
    <ToggleGroup aria-label="Theme">
      {CHOICES.map((choice) => (
        <ToggleGroupItem
          key={choice.theme}
          icon={<choice.Icon />}
          aria-label={choice.label}
          isSelected={theme === choice.theme}
          onChange={() => chooseTheme(choice.theme)}
        />
      ))}
    </ToggleGroup>
  );
}
