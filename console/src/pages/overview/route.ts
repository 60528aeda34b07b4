import type { PageRoute } from "../../app/routes";

const route: PageRoute = {
  path: "/overview",
  title: "Overview",
  group: "Network",
  order: 10,
  load: () => import("./Overview"),
};

export default route;
