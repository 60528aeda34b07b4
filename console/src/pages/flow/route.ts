import type { PageRoute } from "../../app/routes";

const route: PageRoute = {
  path: "/flow",
  title: "Message flow",
  group: "Traffic",
  order: 20,
  load: () => import("./FlowPage"),
};

export default route;
