import type { PageRoute } from "../../app/routes";

const route: PageRoute = {
  path: "/network",
  title: "Network",
  group: "Network",
  order: 15,
  load: () => import("./Network"),
};

export default route;
