import type { PageRoute } from "../../app/routes";

const route: PageRoute = {
  path: "/topology",
  title: "Topology",
  group: "Network",
  order: 20,
  load: () => import("./TopologyPage"),
};

export default route;
