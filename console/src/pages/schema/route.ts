import type { PageRoute } from "../../app/routes";

const route: PageRoute = {
  path: "/schema/*",
  title: "Schema",
  group: "Details",
  order: 90,
  load: () => import("./index"),
};
export default route;
