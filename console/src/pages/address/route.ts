import type { PageRoute } from "../../app/routes";

const route: PageRoute = {
  path: "/address",
  title: "Address",
  group: "Traffic",
  order: 50,
  load: () => import("./Address"),
};

export default route;
