import js from "@eslint/js";
import globals from "globals";
import a11y from "eslint-plugin-jsx-a11y";
import hooks from "eslint-plugin-react-hooks";
import { globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

export default tseslint.config(
  globalIgnores(["node_modules", "test-results", "playwright-report"]),
  js.configs.recommended,
  {
    files: ["**/*.ts", "**/*.tsx"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      globals: globals.browser,
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname ?? "." },
    },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/dot-notation": "off",
      "max-lines": ["error", { max: 300 }],
      "no-console": "error",
      eqeqeq: "error",
    },
  },
  {
    files: ["src/**/*.tsx", "src/**/*.ts"],
    extends: [hooks.configs["recommended-latest"], a11y.flatConfigs.strict],
    // A table of rows that arrow keys move through is a grid (ARIA Authoring Practices).
    rules: { "jsx-a11y/no-noninteractive-element-to-interactive-role": ["error", { table: ["grid"] }] },
  },
);
