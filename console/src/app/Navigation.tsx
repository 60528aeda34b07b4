import { Nav, NavGroup, NavItem } from "@patternfly/react-core/dist/esm/components/Nav";
import { Link, useLocation } from "react-router-dom";

import { GROUPS, ROUTES, type PageRoute } from "./routes";

function Item({ route }: { route: PageRoute }) {
  const path = route.path.replace("/*", "");
  const { pathname } = useLocation();
  const active = pathname === path || pathname.startsWith(`${path}/`);
  return (
    <NavItem isActive={active} itemId={path}>
      <Link to={path} aria-current={active ? "page" : undefined}>
        {route.title}
      </Link>
    </NavItem>
  );
}

/** Shows links to all pages, by group. */
export function Navigation() {
  return (
    <Nav aria-label="Pages">
      {GROUPS.filter((group) => ROUTES.some((route) => route.group === group)).map((group) => (
        <NavGroup key={group} title={group}>
          {ROUTES.filter((route) => route.group === group).map((route) => (
            <Item key={route.path} route={route} />
          ))}
        </NavGroup>
      ))}
    </Nav>
  );
}
