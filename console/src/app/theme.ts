/** Dark or light: the system's choice until the user makes one, which this browser remembers. */

import { create } from "zustand";

export type Theme = "system" | "light" | "dark";

const KEY = "trouter.theme";
const DARK_CLASS = "pf-v6-theme-dark";
const system = window.matchMedia("(prefers-color-scheme: dark)");

function remembered(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

interface ThemeState {
  readonly theme: Theme;
  readonly isDark: boolean;
}

const isDark = (theme: Theme): boolean => (theme === "system" ? system.matches : theme === "dark");

const store = create<ThemeState>(() => ({ theme: remembered(), isDark: isDark(remembered()) }));

function apply(): void {
  const { theme } = store.getState();
  const dark = isDark(theme);
  document.documentElement.classList.toggle(DARK_CLASS, dark);
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  store.setState({ isDark: dark });
}

/** Show the theme from now on, also when the system changes its own. */
export function followTheme(): void {
  system.addEventListener("change", apply);
  apply();
}

/** Choose a theme and remember it. */
export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  store.setState({ theme });
  apply();
}

/** The theme chosen and whether the page is dark now; a picture that cannot use CSS variables draws by it. */
export function useTheme(): ThemeState {
  return store();
}
