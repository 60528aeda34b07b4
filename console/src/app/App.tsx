import { Suspense, lazy } from "react";
import { Spinner } from "@patternfly/react-core/dist/esm/components/Spinner";
import { Navigate, Route, Routes } from "react-router-dom";

import { Frame } from "./Frame";
import { Missing } from "./Missing";
import { ROUTES } from "./routes";

const PAGES = ROUTES.map((route) => ({ path: route.path, Component: lazy(route.load) }));
const FIRST = ROUTES[0]?.path.replace("/*", "");

const loading = (
  <div className="console-loading">
    <Spinner aria-label="The page is loading" />
  </div>
);

/** The console: its frame around the page that the address names. */
export function App() {
  return (
    <Frame>
      <Suspense fallback={loading}>
        <Routes>
          {FIRST !== undefined && <Route index element={<Navigate to={FIRST} replace />} />}
          {PAGES.map(({ path, Component }) => (
            <Route key={path} path={path} element={<Component />} />
          ))}
          <Route path="*" element={<Missing />} />
        </Routes>
      </Suspense>
    </Frame>
  );
}
