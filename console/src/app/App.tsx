import { Suspense, lazy, useEffect, useState } from "react";
import { Spinner } from "@patternfly/react-core/dist/esm/components/Spinner";
import { Navigate, Route, Routes } from "react-router-dom";

import { login, useSession } from "../store";
import { Frame } from "./Frame";
import { Login } from "./Login";
import { NoSuchPage } from "./NoSuchPage";
import { ROUTES, type PageRoute } from "./routes";

/** Time between two requests for the code of a page while the router does not answer. */
const RELOAD_MS = 1_000;
const PAGES = ROUTES.map((route) => ({ path: route.path, Component: lazy(() => loadWithRetry(route.load)) }));

/** Load the code of a page, and repeat the request until the router answers. */
async function loadWithRetry(load: PageRoute["load"]): ReturnType<PageRoute["load"]> {
  for (;;) {
    try {
      return await load();
    } catch {
      await new Promise((resume) => setTimeout(resume, RELOAD_MS));
    }
  }
}
const FIRST = ROUTES[0]?.path.replace("/*", "");

function Loading({ label }: { label: string }) {
  return (
    <div className="console-loading">
      <Spinner aria-label={label} />
    </div>
  );
}

/** Shows the login page until the user has logged in, then the page that the URL names. */
export function App() {
  const { state } = useSession();
  const [hasTried, setHasTried] = useState(false);
  useEffect(() => {
    void login({ credentials: { kind: "none" } }).finally(() => setHasTried(true));
  }, []);
  if (!hasTried) return <Loading label="Connecting to the router" />;
  if (state === "closed" || state === "connecting") return <Login />;
  return (
    <Frame>
      <Suspense fallback={<Loading label="The page is loading" />}>
        <Routes>
          {FIRST !== undefined && <Route index element={<Navigate to={FIRST} replace />} />}
          {PAGES.map(({ path, Component }) => (
            <Route key={path} path={path} element={<Component />} />
          ))}
          <Route path="*" element={<NoSuchPage />} />
        </Routes>
      </Suspense>
    </Frame>
  );
}
