/** The theme of the console: the system's until the user chooses one, which the browser stores. */

import { create } from "zustand";

/** The user's choice; "system" follows the operating system. */
export type Theme = "system" | "light" | "dark";

const KEY = "trouter.theme";
const DARK_CLASS = "pf-v6-theme-dark";
const system = window.matchMedia("(prefers-color-scheme: dark)");

function storedTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

interface ThemeState {
  readonly theme: Theme;
  readonly isDark: boolean;
}

const isDark = (theme: Theme): boolean => (theme === "system" ? system.matches : theme === "dark");

const store = create<ThemeState>(() => ({ theme: storedTheme(), isDark: isDark(storedTheme()) }));

function apply(): void {
  const { theme } = store.getState();
  const dark = isDark(theme);
  document.documentElement.classList.toggle(DARK_CLASS, dark);
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  store.setState({ isDark: dark });
}

/** Apply the theme, now and whenever the system's theme changes. */
export function followTheme(): void {
  system.addEventListener("change", apply);
  apply();
}

/** Apply a theme and store the choice for the next visit. */
export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  store.setState({ theme });
  apply();
}

/** Return the chosen theme and whether the page is dark now, for pictures that cannot use CSS variables. */
export function useTheme(): ThemeState {
  return store();
}
